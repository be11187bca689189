/** One camera for the whole page: opened when it is first wanted, let go when nobody looks. */

let stream = null;
let users = 0;

/** A playing video element; call `release` when done with it. */
export async function watch() {
  if (!navigator.mediaDevices?.getUserMedia) throw new Error("This browser gives pages no camera here.");
  users += 1;
  try {
    stream ??= await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment", width: { ideal: 640 } } });
  } catch (error) {
    users -= 1;
    throw new Error(error.name === "NotAllowedError" ? "The camera was not allowed." : "There is no camera to use.");
  }
  const video = document.createElement("video");
  video.muted = true;
  video.playsInline = true;
  video.srcObject = stream;
  await video.play();
  return video;
}

export function release(video) {
  video.srcObject = null;
  users -= 1;
  if (users === 0 && stream) {
    for (const track of stream.getTracks()) track.stop();
    stream = null;
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
