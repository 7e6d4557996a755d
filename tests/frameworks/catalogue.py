"""The frameworks that are rehearsed: the script of each, and the layout in which its checkpoints are recognised."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "examples" / "frameworks"
LIBRARIES = ROOT / "build" / "frameworks" / "python"
"""What `make rehearse-frameworks` installs of them."""
EXTENSIONS = LIBRARIES.with_name("extensions")
"""What it compiles for DeepSpeed, which would compile it on each node."""
STEPS, SAVES_EVERY, BATCH = 300, 20, 4
"""Of every script: steps, steps from one checkpoint to the next, samples a step and process."""


@dataclass(frozen=True, slots=True)
class Framework:
    """One of them. `layout` is a value of the request's `checkpoint_layout`; the rehearsed request does not name it."""

    script: str
    layout: str
    environment: dict[str, str] = field(default_factory=dict)
    """What its library needs where there is no GPU."""

    @property
    def name(self) -> str:
        """As a job may be called."""
        return self.script.removesuffix(".py").replace("_", "-")


ON_PROCESSORS = {"ACCELERATE_USE_CPU": "1"}
FRAMEWORKS = (
    Framework("hf_trainer.py", "transformers", ON_PROCESSORS),
    Framework("hf_accelerate.py", "accelerate", ON_PROCESSORS),
    Framework("lightning_ddp.py", "lightning"),
    Framework("fsdp_dcp.py", "dcp"),
    Framework("deepspeed_zero.py", "deepspeed", {"TORCH_EXTENSIONS_DIR": str(EXTENSIONS)}),
)
