"""Twenty-five Gaussians: modes found, and how faithfully each is sampled.

The first experiment of the cyclical SGLB paper compares samplers on a mixture of 25 Gaussians by the
modes that a chain visits. A chain that is merely too hot visits all of them, so this table gives
fidelity beside coverage:

- modes: components holding at least 0.1 % of the samples within 3 standard deviations;
- inside: share of samples within 3 standard deviations of a centre (exact draws: 0.989);
- spread: mean squared distance to the nearest centre over its exact value (1 is right, > 1 too hot);
- balance: total variation distance of the shares of the components from 1/25 each (0 is right).

Run: ``python benchmarks/mog25.py [--write]``.
"""

from __future__ import annotations

import json
import math
import platform
import sys
import time
from pathlib import Path

import numba
import numpy as np

from boostplugins import CosineCycle
from boostplugins._jit import njit

VARIANCE = 0.03
CENTRES = np.array([(a, b) for a in (-4.0, -2.0, 0.0, 2.0, 4.0) for b in (-4.0, -2.0, 0.0, 2.0, 4.0)])
STEPS, CYCLES, SEEDS = 50_000, 30, (0, 1, 2)
RESULTS = Path(__file__).resolve().parent / "results"


@njit
def walk(start, gain, step, noise, gradient_noise, centres, variance, rng):  # type: ignore[no-untyped-def]
    """x <- x + step_t gain_t (grad log p(x) + gradient_noise z) + noise_t z'; every state."""
    x, y = start[0], start[1]
    out = np.empty((len(step), 2))
    log_weight = np.empty(len(centres))
    for t in range(len(step)):
        best = -np.inf
        for k in range(len(centres)):
            dx, dy = x - centres[k, 0], y - centres[k, 1]
            log_weight[k] = -0.5 * (dx * dx + dy * dy) / variance
            best = max(best, log_weight[k])
        total, gx, gy = 0.0, 0.0, 0.0
        for k in range(len(centres)):
            weight = math.exp(log_weight[k] - best)
            total += weight
            gx += weight * (centres[k, 0] - x)
            gy += weight * (centres[k, 1] - y)
        gx = gx / (total * variance) + gradient_noise * rng.standard_normal()
        gy = gy / (total * variance) + gradient_noise * rng.standard_normal()
        x += step[t] * gain[t] * gx + noise[t] * rng.standard_normal()
        y += step[t] * gain[t] * gy + noise[t] * rng.standard_normal()
        out[t, 0], out[t, 1] = x, y
    return out


def samplers() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Gain, step, noise and which states count, of each sampler."""
    t = np.arange(STEPS)
    length = STEPS // CYCLES
    phase = (t % length) / length
    ones, every = np.ones(STEPS), np.ones(STEPS, dtype=bool)
    decaying = 0.05 * (t + 1.0) ** -0.55
    cyclical = 0.09 * 0.5 * (np.cos(np.pi * phase) + 1.0)
    sampling = phase >= 0.25
    schedule = CosineCycle(length=length, max_scale=10.0, min_scale=1.0, exploration=0.8)
    gain = np.array([schedule.scale(int(i)) for i in t])
    settled = np.array([not schedule.exploring(int(i)) for i in t])
    fixed, right = np.full(STEPS, 0.01), math.sqrt(2 * 0.01)
    small = np.full(STEPS, 0.001)
    return {
        "SGLD, step 0.05 (t+1)^-0.55": (ones, decaying, np.sqrt(2 * decaying), every),
        "clr-SGLD, step 0.09, explore 0.25": (ones, cyclical, np.sqrt(2 * cyclical) * sampling, sampling),
        "cg-SGLD, step noise 0.4 (paper)": (gain, fixed, 0.4 * ones, every),
        "  its sampling stage only": (gain, fixed, 0.4 * ones, settled),
        "cg-SGLD, step noise sqrt(2 step)": (gain, fixed, right * ones, every),
        "  its sampling stage only ": (gain, fixed, right * ones, settled),
        "cg-SGLD, step 0.001, sqrt(2 step)": (gain, small, np.sqrt(2 * small), every),
        "N-SGLD, step 0.02, step noise 5": (ones, np.full(STEPS, 0.02), 5.0 * ones, every),
        "N-SGLD, step 0.02, noise 5 sqrt(2 step)": (
            ones,
            np.full(STEPS, 0.02),
            5.0 * math.sqrt(0.04) * ones,
            every,
        ),
    }


def fidelity(samples: np.ndarray) -> dict[str, float]:
    """Coverage and fidelity of samples, (n, 2)."""
    squares = ((samples[:, None] - CENTRES[None]) ** 2).sum(axis=2)
    nearest, least = squares.argmin(axis=1), squares.min(axis=1)
    inside = least < 9 * VARIANCE
    shares = np.bincount(nearest[inside], minlength=25) / len(samples)
    return {
        "modes": int((shares >= 1e-3).sum()),
        "inside": float(inside.mean()),
        "spread": float(least.mean() / (2 * VARIANCE)),
        "balance": float(0.5 * np.abs(shares / max(shares.sum(), 1e-300) - 1 / 25).sum()),
    }


def exact(seed: int) -> np.ndarray:
    """Independent draws of the mixture."""
    rng = np.random.default_rng(seed)
    centres = CENTRES[rng.integers(0, 25, STEPS)]
    return centres + math.sqrt(VARIANCE) * rng.standard_normal((STEPS, 2))


def main() -> None:
    """Run all samplers and print the table."""
    rows: dict[str, list[dict[str, float]]] = {"exact draws": [fidelity(exact(seed)) for seed in SEEDS]}
    begin = time.process_time()
    for name, (gain, step, noise, counts) in samplers().items():
        runs = []
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            start = rng.uniform(-10.0, 10.0, 2)
            states = walk(start, gain, step, noise, 1.0, CENTRES, VARIANCE, rng)
            runs.append(fidelity(states[counts]))
        rows[name] = runs
    lines = [
        f"25 Gaussians, {STEPS} steps, {CYCLES} cycles, gradient noise N(0, I), seeds {SEEDS}",
        f"{'sampler':42s} {'modes':>12s} {'inside':>8s} {'spread':>8s} {'balance':>8s}",
    ]
    for name, runs in rows.items():
        modes = ", ".join(str(int(run["modes"])) for run in runs)
        inside, spread, balance = (
            float(np.mean([run[key] for run in runs])) for key in ("inside", "spread", "balance")
        )
        lines.append(f"{name:42s} {modes:>12s} {inside:8.3f} {spread:8.2f} {balance:8.3f}")
    lines.append(
        f"CPU {time.process_time() - begin:.1f} s; {platform.machine()} {platform.system()}, "
        f"Python {platform.python_version()}, numpy {np.__version__}, numba {numba.__version__}"
    )
    print("\n".join(lines))
    if "--write" in sys.argv:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "mog25.txt").write_text("\n".join(lines) + "\n")
        (RESULTS / "mog25.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
