"""Pre-train a small backbone on Tiny-ImageNet within a wall-clock budget, on one GPU.

    python train.py --data DIR --out DIR --minutes 18 --mix 0.5 --decay 0.1 --compile

DIR holds a.npz, b.npz and val.npz: WebP bytes of 64x64 pictures back to back (`data`), their offsets (`off`)
and labels (`y`).  All data stay on the GPU; augmentation is one batched affine warp and colour change.
The learning rate follows the elapsed share of the budget, so any budget gives a finished schedule.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from tinynet import TinyNet
from torch.nn import functional


def decode(chunk: list[bytes]) -> np.ndarray:
    return np.stack(
        [np.asarray(Image.open(io.BytesIO(b)).convert("RGB")) for b in chunk]
    )


def load(paths: list[Path]) -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = [], []
    with ProcessPoolExecutor() as pool:
        for path in paths:
            pack = np.load(path)
            raw, off = pack["data"].tobytes(), pack["off"]
            items = [raw[a:b] for a, b in pairwise(off)]
            chunks = [items[i : i + 500] for i in range(0, len(items), 500)]
            images += list(pool.map(decode, chunks))
            labels.append(pack["y"])
    pixels = torch.from_numpy(np.concatenate(images)).permute(0, 3, 1, 2).contiguous()
    return pixels.cuda(), torch.from_numpy(np.concatenate(labels)).long().cuda()


def augment(x: torch.Tensor, strength: float) -> torch.Tensor:
    """Random resized crop, flip, and colour: one affine grid for the whole batch."""
    n, device = len(x), x.device
    u = lambda low, high: torch.empty(n, device=device).uniform_(low, high)  # noqa: E731
    scale = u(1 - 0.65 * strength, 1.0).sqrt()
    ratio = torch.exp(u(-0.28, 0.28) * strength)
    sx, sy = scale * ratio.sqrt(), scale / ratio.sqrt()
    flip = torch.where(u(0, 1) < 0.5, -1.0, 1.0)
    theta = torch.zeros(n, 2, 3, device=device)
    theta[:, 0, 0], theta[:, 1, 1] = sx * flip, sy
    theta[:, 0, 2], theta[:, 1, 2] = (
        u(-1, 1) * (1 - sx).clamp(min=0),
        u(-1, 1) * (1 - sy).clamp(min=0),
    )
    x = functional.grid_sample(
        x,
        functional.affine_grid(theta, list(x.shape), False),
        "bilinear",
        "reflection",
        False,
    )
    gain = lambda: (1 + u(-0.4, 0.4) * strength).view(n, 1, 1, 1)  # noqa: E731
    x = x * gain()
    x = (x - x.mean((1, 2, 3), keepdim=True)) * gain() + x.mean((1, 2, 3), keepdim=True)
    grey = x.mean(1, keepdim=True)
    saturation = torch.where(u(0, 1) < 0.1, 0.0, 1 + u(-0.4, 0.4) * strength).view(
        n, 1, 1, 1
    )
    return (grey + (x - grey) * saturation).clamp(0, 1)


def cutmix(
    x: torch.Tensor, y: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Paste one random box of a shuffled batch into the batch; the labels mix by area."""
    size, keep = x.shape[-1], float(np.random.beta(1.0, 1.0))
    half = int(size * math.sqrt(1 - keep) / 2)
    cy, cx = np.random.randint(size, size=2)
    top, bottom, left, right = (
        max(cy - half, 0),
        min(cy + half, size),
        max(cx - half, 0),
        min(cx + half, size),
    )
    other = torch.randperm(len(x), device=x.device)
    x = x.clone()
    x[:, :, top:bottom, left:right] = x[other, :, top:bottom, left:right]
    return x, y[other], 1 - (bottom - top) * (right - left) / size**2


@torch.inference_mode()
def evaluate(
    model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor
) -> tuple[float, float]:
    model.eval()
    hits, loss = 0, 0.0
    for i in range(0, len(x), 2000):
        logits = model(
            x[i : i + 2000].float().div(255).to(memory_format=torch.channels_last)
        ).float()
        hits += (logits.argmax(1) == y[i : i + 2000]).sum().item()
        loss += functional.cross_entropy(
            logits, y[i : i + 2000], reduction="sum"
        ).item()
    model.train()
    return hits / len(x), loss / len(x)


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("--data", type=Path, required=True)
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--minutes", type=float, default=8.0)
    p.add_argument("--batch", type=int, default=512)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--decay", type=float, default=0.05)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument(
        "--mix", type=float, default=0.0, help="share of batches mixed by CutMix"
    )
    p.add_argument("--compile", action="store_true")
    args = p.parse_args()
    torch.manual_seed(args.seed)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True

    start = time.time()
    x, y = load([args.data / "a.npz", args.data / "b.npz"])
    vx, vy = load([args.data / "val.npz"])
    print(
        f"data {tuple(x.shape)} + {tuple(vx.shape)} in {time.time() - start:.0f}s",
        flush=True,
    )

    model = TinyNet().cuda().to(memory_format=torch.channels_last)
    average = torch.optim.swa_utils.AveragedModel(
        model,
        multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.999),
        use_buffers=True,
    )
    weights = [w for w in model.parameters() if w.ndim > 1]
    others = [w for w in model.parameters() if w.ndim <= 1]
    opt = torch.optim.AdamW(
        [
            {"params": weights, "weight_decay": args.decay},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=args.lr,
        fused=True,
    )
    step_model = torch.compile(model) if args.compile else model
    print("parameters", sum(w.numel() for w in model.parameters()), flush=True)

    budget, begin, epoch = args.minutes * 60, time.time(), 0
    while (done := (time.time() - begin) / budget) < 1:
        order = torch.randperm(len(x), device="cuda")
        total = torch.zeros((), device="cuda")
        for i in range(0, len(x) - args.batch + 1, args.batch):
            done = min((time.time() - begin) / budget, 1.0)
            warm = min(1.0, done / 0.03)
            for group in opt.param_groups:
                group["lr"] = (
                    args.lr * warm * 0.5 * (1 + math.cos(math.pi * done)) + 1e-6
                )
            strength = 1.0 if done < 0.9 else 0.3  # weak augmentation in the last tenth
            pick = order[i : i + args.batch]
            images, labels = augment(x[pick].float().div_(255), strength), y[pick]
            others, keep = labels, 1.0
            if done < 0.9 and np.random.rand() < args.mix:
                images, others, keep = cutmix(images, labels)
            images = images.to(memory_format=torch.channels_last)
            with torch.autocast("cuda", torch.bfloat16):
                logits = step_model(images)
                loss = keep * functional.cross_entropy(logits, labels)
                loss = loss + (1 - keep) * functional.cross_entropy(logits, others)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            average.update_parameters(model)
            total += loss.detach()
            if done >= 1:
                break
        epoch += 1
        if epoch % 10 == 0 or done >= 0.999:
            acc, _ = evaluate(average.module, vx, vy)
            print(
                f"epoch {epoch} share {done:.2f} loss {total.item() / (len(x) // args.batch):.3f} val top-1 {acc:.4f}",
                flush=True,
            )

    final = average.module
    val, train = evaluate(final, vx, vy), evaluate(final, x[:20000], y[:20000])
    report = {
        "epochs": epoch,
        "val_top1": val[0],
        "val_loss": val[1],
        "train_top1": train[0],
        "train_loss": train[1],
        "args": {k: str(v) for k, v in vars(args).items()},
    }
    print(json.dumps(report), flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "report.json").write_text(json.dumps(report, indent=1))
    save_file(
        {
            k: v.detach().cpu().contiguous()
            for k, v in final.state_dict().items()
            if not k.endswith("num_batches_tracked")
        },
        str(args.out / "tinynet.safetensors"),
    )


if __name__ == "__main__":
    main()
