"""An all-reduce between nodes, run by the job's own Python: every line on its output is a JSON object with what it has reached.

It needs PyTorch and the standard library, and knows nothing of the agent, which starts it on each node of a group, bounds its time and
reads its lines: `processes` once PyTorch is there, `ready` once a process has its device, `seconds` and `bytes` once all have measured.
A node without GPUs has one process, and gloo; one with GPUs has a process for each, and NCCL.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
MIB = 1024**2
CPU_BYTES, GPU_BYTES, GPU_MOST = 32 * MIB, 256 * MIB, 2048 * MIB
"""NCCL comes near a fast network's rate only with so much, and with more where many ranks share it; gloo's rate changes little beyond."""
GPU_RANKS = 64
"""For each so many ranks GPU_BYTES more."""
WARM_BYTES = MIB
TRIES, ENOUGH_S = 8, 2.0
"""The best of so many tries, or of those that fit into this time, counts: what else the machine does only slows some of them."""
LEAVES_S = 1.0
"""How long a process stays once it has told its figures: its end would break the connections of those that still read them."""


def main(address: str, port: str, node: str, nodes: str, most_s: str, place: str = "") -> int:
    """`address` is that of the group's first node, `node` this one's place in the group, `place` the number of a GPU."""
    sys.path[:] = [one for one in sys.path if Path(one).resolve() != HERE.parent]  # no module is imported from here
    told = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no line of ours
    try:
        import torch
        import torch.distributed as distributed

        if not distributed.is_available():
            raise RuntimeError("this PyTorch was built without torch.distributed")
        gpus = torch.cuda.device_count() if distributed.is_nccl_available() else 0
        processes = max(1, gpus)
        if not place:
            tell(told, processes=processes, gpus=gpus)
            if processes > 1:
                return several(told, processes, [address, port, node, nodes, most_s])
        own = int(place or 0)
        rank, world = int(node) * processes + own, int(nodes) * processes
        if gpus:
            # Names the network that NCCL has chosen, in its words, once a node.
            os.environ["NCCL_DEBUG"], os.environ["NCCL_DEBUG_SUBSYS"] = ("WARN" if own else "INFO"), "INIT"
            os.environ.pop("NCCL_DEBUG_FILE", None)
            torch.cuda.set_device(own)
            torch.zeros(1, device="cuda").add_(1).item()
        listening = listen(address, int(port)) if rank == 0 else None
    except Exception as problem:
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
        return 1
    tell(told, ready=own)
    store = meet(distributed, address, int(port), world, float(most_s), listening)
    patience = timedelta(seconds=float(most_s))
    distributed.init_process_group(
        "nccl" if gpus else "gloo", store=store, rank=rank, world_size=world, timeout=patience
    )
    device = torch.device("cuda", own) if gpus else torch.device("cpu")
    seconds, size = measured(torch, distributed, device, world)
    tell(told, seconds=seconds, bytes=size, ranks=world)
    time.sleep(LEAVES_S)
    return 0


def tell(out: Any, **facts: object) -> None:
    out.write(json.dumps(facts) + "\n")


def listen(address: str, port: int) -> int:
    """A socket for the store of the group, on this address alone."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((address, port))
        made.listen(1024)
        return made.detach()


def meet(distributed: Any, address: str, port: int, world: int, most_s: float, listening: int | None) -> Any:
    """The store in which processes find each other. The newer of PyTorch's two takes no socket that listens already."""
    options: dict[str, Any] = {"timeout": timedelta(seconds=most_s), "master_listen_fd": listening}
    try:
        return distributed.TCPStore(address, port, world, listening is not None, use_libuv=False, **options)
    except TypeError:  # before PyTorch 2.3 there was one
        return distributed.TCPStore(address, port, world, listening is not None, **options)


def measured(torch: Any, distributed: Any, device: Any, world: int) -> tuple[float, int]:
    """Seconds of the fastest all-reduce, as its slowest rank saw it, and its bytes on each rank."""
    size = CPU_BYTES if device.type == "cpu" else min(GPU_MOST, GPU_BYTES * (1 + world // GPU_RANKS))
    values = torch.zeros(size // 4, dtype=torch.float32, device=device)
    once(torch, distributed, values[: WARM_BYTES // 4])
    took = list[float]()
    while len(took) < TRIES and sum(took) < ENOUGH_S:
        seconds = torch.tensor([once(torch, distributed, values)], dtype=torch.float64, device=device)
        distributed.all_reduce(
            seconds, op=distributed.ReduceOp.MAX
        )  # the same on all, so that all leave the loop together
        took.append(float(seconds.item()))
    return min(took), size


def once(torch: Any, distributed: Any, values: Any) -> float:
    began = time.monotonic()
    distributed.all_reduce(values)
    if values.device.type != "cpu":
        torch.cuda.synchronize()
    return time.monotonic() - began


def several(out: Any, processes: int, words: list[str]) -> int:
    """A process for each GPU. The first that fails ends all, because the others would wait for it."""
    command = [sys.executable, str(HERE), *words]
    left = [subprocess.Popen([*command, str(place)], stdout=out.fileno()) for place in range(processes)]
    while left:
        for one in left:
            if (code := one.poll()) is not None:
                if code:
                    for other in left:
                        other.kill()
                    return code if code > 0 else 1
                left.remove(one)
                break
        time.sleep(0.05)
    return 0


if __name__ == "__main__":
    sys.stdout.flush()
    code = main(*sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # without the destructors of libraries, which may wait for peers
