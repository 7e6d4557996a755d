"""What is wrong with a machine, and what is not: the answers of its programs, judged."""

from __future__ import annotations

from typing import Any

import pytest

from agent.health.facts import LATE, MachineFacts, Promised
from agent.health.judging import MOST, judged, judged_late, with_more
from agent.health.kernel import HARDWARE_XIDS, KernelErrors, hardware
from agent.programs import Said

EIGHT = Promised(gpus=8)
FELL = "NVRM: Xid (PCI:0000:86:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def row(number: int, errors: str = "0", *states: str) -> str:
    return ", ".join([f"00000000:{number:02X}:00.0", errors, *(states or ("No", "No", "[N/A]"))])


def smi(gpus: int = 8, code: int | None = 0, before: str = "", **other: str) -> Said:
    lines = [other.get(f"gpu{number}", row(number)) for number in range(gpus)]
    return Said(code, "\n".join([*([before] if before else []), *lines]))


def wrong(promised: Promised = EIGHT, **facts: Any) -> tuple[str, ...]:
    return judged(MachineFacts(promised=promised, **facts)).wrong


def list_notes(promised: Promised = EIGHT, **facts: Any) -> tuple[str, ...]:
    found = judged(MachineFacts(promised=promised, **facts))
    assert found.wrong == ()
    return found.notes


# GPUs


def test_a_machine_with_all_its_gpus_is_healthy() -> None:
    assert judged(MachineFacts(promised=EIGHT, smi=smi())).sure
    assert list_notes(smi=smi()) == ()


def test_a_machine_of_a_type_without_gpus_is_never_asked_for_any() -> None:
    assert list_notes(Promised(), smi=Said(9, "NVIDIA-SMI has failed"), pci_gpus=0) == ()


def test_more_gpus_than_promised_are_no_fault() -> None:
    assert list_notes(Promised(gpus=1), smi=smi(2)) == ()


def test_fewer_gpus_than_its_type_has_are_a_fault_of_the_machine() -> None:
    assert wrong(smi=smi(7)) == ("it has 7 of the 8 GPUs of its type: nvidia-smi says nothing else",)


def test_what_nvidia_smi_says_beside_its_rows_is_quoted_and_counted_as_no_gpu() -> None:
    lost = "Unable to determine the device handle for GPU0000:86:00.0: Unknown Error"
    assert wrong(smi=smi(7, code=255, before=lost)) == (
        f"it has 7 of the 8 GPUs of its type: nvidia-smi ended with code 255 ({lost})",
    )


def test_a_row_that_calls_its_gpu_lost_is_no_gpu() -> None:
    (why,) = wrong(smi=smi(gpu3="00000000:03:00.0, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost]"))
    assert why.startswith("it has 7 of the 8 GPUs")


@pytest.mark.parametrize("code", [8, 10, 15])
def test_an_exit_code_about_a_gpu_is_a_fault_even_beside_all_rows(code: int) -> None:
    (why,) = wrong(smi=smi(code=code))
    assert "a GPU" in why or "a GPU's" in why


@pytest.mark.parametrize(
    "garbage", ["", "\x00\xff garbage", "a, b, c", "," * 5000, "0, 1, 2", "{}", "No devices were found"]
)
def test_garbage_in_place_of_rows_is_no_gpu_and_breaks_nothing(garbage: str) -> None:
    (why,) = wrong(smi=Said(15, garbage))
    assert why.startswith("a GPU has fallen off the bus")
    (why,) = wrong(smi=Said(0, garbage))
    assert why.startswith("it has 0 of the 8 GPUs")
    assert len(why) < MOST


def test_a_program_that_hangs_where_gpus_are_promised_is_a_fault() -> None:
    assert wrong(smi=Said(None, "")) == ("nvidia-smi has not answered in time",)


@pytest.mark.parametrize("said", [None, Said(9, "NVIDIA-SMI has failed"), Said(12), Said(4), Said(13)])
@pytest.mark.parametrize("pci", [None, 8, 9])
def test_an_image_without_a_driver_is_told_and_is_no_fault_of_the_machine(said: Said | None, pci: int | None) -> None:
    (line,) = list_notes(smi=said, pci_gpus=pci)
    assert line.startswith("the GPUs were not checked: ")


@pytest.mark.parametrize("said", [None, Said(9)])
def test_without_a_driver_fewer_gpus_on_pci_are_a_fault_all_the_same(said: Said | None) -> None:
    (why,) = wrong(smi=said, pci_gpus=7)
    assert why.startswith("PCI shows 7 of the 8 GPUs of its type")


def test_a_warning_about_the_inforom_is_told() -> None:
    warning = "WARNING: infoROM is corrupted at gpu 0000:00:1E.0"
    assert list_notes(smi=smi(code=14, before=warning)) == (f"nvidia-smi ended with code 14 ({warning})",)


def test_uncorrectable_errors_of_memory_are_a_fault() -> None:
    assert wrong(smi=smi(gpu2=row(2, "3"))) == (
        "GPU 00000000:02:00.0 has 3 uncorrectable memory errors (ECC) since the boot",
    )


@pytest.mark.parametrize("errors", ["0", "[N/A]", "[Not Supported]", "N/A", "", "-1", "x", "[Unknown Error]"])
def test_a_gpu_that_tells_no_number_of_errors_has_none(errors: str) -> None:
    assert list_notes(smi=smi(gpu2=row(2, errors))) == ()


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (("Yes", "No", "[N/A]"), "could not be remapped"),
        (("No", "Yes", "[N/A]"), "waits for a reset to be remapped"),
        (("[N/A]", "[N/A]", "Yes"), "waits for a reset to be retired"),
    ],
)
def test_rows_of_memory_that_are_lost_are_a_fault(states: tuple[str, ...], words: str) -> None:
    (why,) = wrong(smi=smi(gpu0=row(0, "0", *states)))
    assert words in why


def test_a_driver_that_knows_fewer_fields_is_enough() -> None:
    assert list_notes(smi=Said(0, "\n".join(f"00000000:0{number}:00.0, [N/A]" for number in range(8)))) == ()


# Neuron devices, EFA, the disk, and what is only told


@pytest.mark.parametrize(
    ("listed", "devices"),
    [(Said(0, "[{}, {}]"), None), (None, 2), (Said(1, "error"), 2), (Said(0, "not json"), 2), (Said(0, "{}"), 2)],
)
def test_neuron_devices_are_counted_by_the_list_or_else_in_dev(listed: Said | None, devices: int | None) -> None:
    assert list_notes(Promised(neurons=2), neuron_ls=listed, neuron_devices=devices) == ()
    (why,) = wrong(Promised(neurons=16), neuron_ls=listed, neuron_devices=devices)
    assert why == "it has 2 of the 16 Neuron devices of its type"


@pytest.mark.parametrize("devices", [None, 0])
def test_an_image_without_neurons_driver_is_told(devices: int | None) -> None:
    (line,) = list_notes(Promised(neurons=16), neuron_devices=devices)
    assert line.startswith("the Neuron devices were not checked")


def test_a_neuron_ls_that_hangs_is_a_fault() -> None:
    assert wrong(Promised(neurons=16), neuron_ls=Said(None), neuron_devices=16) == (
        "neuron-ls has not answered in time",
    )


@pytest.mark.parametrize("error", ["EIO", "EROFS", "ENODEV", LATE])
def test_a_disk_that_keeps_nothing_is_a_fault(error: str) -> None:
    assert len(wrong(Promised(), disk=error)) == 1


@pytest.mark.parametrize("error", ["ENOSPC", "EDQUOT", "EFBIG", "EACCES", "OSError"])
def test_a_disk_that_is_too_small_or_forbidden_is_none_of_the_machine(error: str) -> None:
    assert list_notes(Promised(), disk=error) == (f"a small file could not be written ({error})",)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"clock_ahead_s": 300.0}, "its clock is +300 s off AWS's"),
        ({"clock_ahead_s": -90.0}, "its clock is -90 s off AWS's"),
        ({"open_files": 1024}, "only 1024 files may be open"),
        ({"locked_memory": 8_388_608, "promised": Promised(efas=1)}, "EFA needs locked memory, which is limited here"),
        ({"shared_memory": 64 * 1024**2}, "the shared memory (/dev/shm) has only 0.06 GiB"),
        ({"free": 10, "archive": 11}, "the disk has no room for the code's archive"),
    ],
)
def test_what_no_other_machine_would_mend_is_told_and_nothing_more(facts: dict[str, Any], words: str) -> None:
    assert list_notes(**{"promised": Promised(), **facts}) == (words,)


@pytest.mark.parametrize(
    "facts", [{"clock_ahead_s": 1.0}, {"open_files": -1}, {"open_files": 65_536}, {"locked_memory": 1}, {"free": 11}]
)
def test_what_is_as_usual_is_not_told(facts: dict[str, Any]) -> None:
    assert list_notes(Promised(), **facts) == ()


def test_of_very_much_that_is_wrong_a_report_has_the_beginning() -> None:
    assert len(with_more(judged(MachineFacts(promised=Promised())), *("x" * 400, "y" * 400)).words) == MOST


# The kernel's lines


@pytest.mark.parametrize("number", sorted(HARDWARE_XIDS))
@pytest.mark.parametrize("where", ["PCI:0000:86:00", "0000:86:00"])
def test_an_xid_of_the_hardware_is_told_with_its_gpu(number: int, where: str) -> None:
    line = f"2026-11-24T04:00:00+0000 host kernel: NVRM: Xid ({where}): {number}, pid=12, name=python, words"
    assert hardware(line) == f"Xid {number} of GPU 0000:86:00 ({HARDWARE_XIDS[number]})"


@pytest.mark.parametrize("number", [13, 31, 43, 45, 68, 69, 154, 7, 790, 99999])
def test_an_xid_that_programs_cause_is_the_codes_own(number: int) -> None:
    assert hardware(f"NVRM: Xid (PCI:0000:86:00): {number}, pid=12, name=python, Ch 00000008") == ""


@pytest.mark.parametrize(
    "line",
    [
        "",
        "NVRM: Xid",
        "NVRM: Xid (PCI:0000:86:00): seventy-nine",
        "NVRM: Xid (PCI:0000:86:00): 13, pid=1, name=NVRM: Xid (PCI:0000:86:00): 79, pid=2",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module",
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 22013, Non-fatal, Link 27",
        "I/O error, dev fd0, sector 0",
        "Out of memory: Killed process 12 (python)",
        "mce: [Hardware Error]: Machine check events logged",
        "pcieport 0000:00:1c.0: PCIe Bus Error: severity=Corrected, type=Physical Layer",
        "python[12]: segfault at 0 ip 0 sp 0 error 4",
        "EXT4-fs (nvme0n1p1): mounted filesystem",
    ],
)
def test_other_lines_say_nothing_of_the_hardware(line: str) -> None:
    assert hardware(line) == ""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 28",
            "fatal SXid 24007 of NVSwitch 0000:c1:00.0",
        ),
        ("Memory failure: 0x12ab: recovery action for dirty LRU page: Recovered", "the machine's memory has failed: "),
        ("pcieport 0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer", "a fatal error of PCIe: "),
        ("pcieport 0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Inaccessible", "a fatal error of PCIe: "),
        (
            "infiniband rdmap0s6: The device didn't send any completion for admin cmd CREATE_QP(1)",
            "an EFA device does not answer: ",
        ),
        ("I/O error, dev nvme1n1, sector 8 op 0x1:(WRITE)", "a disk does not read or write: "),
    ],
)
def test_other_errors_of_the_hardware_are_told(line: str, words: str) -> None:
    assert hardware(f"kernel: {line}").startswith(words)


def test_errors_count_for_ten_minutes_and_each_once() -> None:
    clock = [0.0]
    errors = KernelErrors(now=lambda: clock[0])
    for _ in range(1000):
        errors.hear(FELL)
    assert len(errors.recent()) == 1
    clock[0] = 601.0
    assert errors.recent() == []


# Once the command has failed


def test_a_gpu_that_is_gone_now_explains_the_error() -> None:
    before = judged(MachineFacts(promised=EIGHT, smi=smi()))
    late = MachineFacts(promised=EIGHT, smi=Said(15, "GPU is lost"), kernel=("Xid 79 of GPU 0",))
    assert judged_late(late, before).wrong == (
        "Xid 79 of GPU 0",
        "a GPU has fallen off the bus, or cannot be reached (GPU is lost)",
    )


@pytest.mark.parametrize("said", [None, Said(None), Said(9, "driver gone"), smi()])
def test_a_program_that_says_nothing_explains_nothing(said: Said | None) -> None:
    before = judged(MachineFacts(promised=EIGHT, smi=smi()))
    assert judged_late(MachineFacts(promised=EIGHT, smi=said), before).wrong == ()


def test_gpus_that_were_never_counted_are_not_missed_now() -> None:
    before = judged(MachineFacts(promised=EIGHT, smi=None))
    assert judged_late(MachineFacts(promised=EIGHT, smi=smi(3)), before).wrong == ()
