/** One camera for the whole page: opened on first use, and released when nothing shows it. */

let stream = null;
let chosen = ""; // the identifier of a camera, empty for the browser's choice
const videos = new Set(); // the elements that show it

async function opened() {
  const wish = chosen ? { deviceId: { exact: chosen } } : { facingMode: "environment" };
  try {
    return await navigator.mediaDevices.getUserMedia({ video: { ...wish, width: { ideal: 640 } } });
  } catch (error) {
    throw new Error(error.name === "NotAllowedError" ? "The camera was not allowed." : "There is no camera to use.");
  }
}

/** A playing video element; call `release` when done with it. */
export async function watch() {
  if (!navigator.mediaDevices?.getUserMedia) throw new Error("The camera needs HTTPS or localhost.");
  const video = document.createElement("video");
  videos.add(video);
  try {
    stream ??= await opened();
  } catch (error) {
    videos.delete(video);
    throw error;
  }
  video.muted = true;
  video.playsInline = true;
  video.srcObject = stream;
  await video.play();
  return video;
}

export function release(video) {
  video.srcObject = null;
  videos.delete(video);
  if (videos.size === 0) stop();
}

function stop() {
  for (const track of stream?.getTracks() ?? []) track.stop();
  stream = null;
}

/** The cameras: {id, name, used}; their names are known once one was allowed. */
export async function cameras() {
  const used = stream?.getVideoTracks()[0]?.getSettings().deviceId;
  const devices = (await navigator.mediaDevices.enumerateDevices()).filter((one) => one.kind === "videoinput");
  return devices.map((one, i) => ({ id: one.deviceId, name: one.label || `Camera ${i + 1}`, used: one.deviceId === used }));
}

/** Use another camera, also for what plays now. */
export async function choose(id) {
  chosen = id;
  if (!stream) return;
  stop();
  stream = await opened();
  for (const video of videos) {
    video.srcObject = stream;
    await video.play();
  }
}

/** What the camera sees now, as a JPEG. */
export function frame(video) {
  const canvas = document.createElement("canvas");
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  canvas.getContext("2d").drawImage(video, 0, 0);
  return new Promise((resolve) => canvas.toBlob((blob) => resolve(new File([blob], `camera-${Date.now()}.jpg`)), "image/jpeg", 0.9));
}
