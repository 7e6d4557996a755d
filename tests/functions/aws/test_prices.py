"""What an hour costs at most, by whatever products the Price List has under the same words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aws.prices import VolumePrices, on_demand_usd, volume_prices
from tests.fakes.aws import Aws
from tests.fakes.wire import Call

HOME = "eu-central-1"
GP3 = [("GB-Mo", 0.0952), ("IOPS-Mo", 0.006), ("GiBps-mo", 48.64)]
"""As the list gives them."""
WANTED = VolumePrices(gib=0.0952, iops=0.006, mibs=0.0475)


def listed(monkeypatch: pytest.MonkeyPatch, fake: Aws, *pages: list[tuple[str, float]]) -> None:
    """Has the list answer with these rates, each of a product of its own."""

    def answer(call: Call) -> dict[str, Any]:
        page = int(call.params.get("NextToken", "0"))
        more = {"NextToken": str(page + 1)} if page + 1 < len(pages) else {}
        return {"FormatVersion": "aws_v1", "PriceList": [_product(*rate) for rate in pages[page]], **more}

    monkeypatch.setattr(fake.prices, "answer", answer)


def _product(unit: str, usd: float) -> str:
    rate = {"unit": unit, "pricePerUnit": {"USD": f"{usd:.10f}"}}
    return json.dumps({"product": {}, "terms": {"OnDemand": {"T": {"priceDimensions": {"D": rate}}}}})


@pytest.mark.parametrize("hours", [[0.0, 55.04], [55.04, 0.0], [31.5, 55.04], [55.04, 31.5]])
def test_of_several_hours_the_dearest_counts(monkeypatch: pytest.MonkeyPatch, fake: Aws, hours: list[float]) -> None:
    """A Capacity Block's hours have no price in the list, and stand beside those on demand."""
    listed(monkeypatch, fake, [("Hrs", usd) for usd in hours])
    assert on_demand_usd(HOME, "p5.48xlarge") == 55.04


def test_an_hour_without_a_price_is_not_free(monkeypatch: pytest.MonkeyPatch, fake: Aws) -> None:
    listed(monkeypatch, fake, [("Hrs", 0.0)])
    assert on_demand_usd(HOME, "p5.48xlarge") is None


@pytest.mark.parametrize("more", [[], [("GB-Mo", 0.0)], [("GB-Mo", 0.01), ("IOPS-Mo", 0.0), ("Hrs", 9.0)]])
def test_of_several_rates_of_a_volume_the_dearest_counts(
    monkeypatch: pytest.MonkeyPatch, fake: Aws, more: list[tuple[str, float]]
) -> None:
    listed(monkeypatch, fake, [*GP3, *more])
    assert volume_prices(HOME) == WANTED


@pytest.mark.parametrize("other", [("GB-month", 0.0952), ("MiBps-Mo", 0.0475)])
def test_the_other_words_for_a_unit_are_known_too(
    monkeypatch: pytest.MonkeyPatch, fake: Aws, other: tuple[str, float]
) -> None:
    rates = dict([*GP3, other])
    del rates["GB-Mo" if other[0].startswith("GB") else "GiBps-mo"]
    listed(monkeypatch, fake, list(rates.items()))
    assert volume_prices(HOME) == WANTED


def test_rates_on_a_second_page_count(monkeypatch: pytest.MonkeyPatch, fake: Aws) -> None:
    listed(monkeypatch, fake, GP3[:1], [], GP3[1:])
    assert volume_prices(HOME) == WANTED


def test_a_volume_without_all_of_its_rates_has_no_price(monkeypatch: pytest.MonkeyPatch, fake: Aws) -> None:
    listed(monkeypatch, fake, GP3[:2])
    assert volume_prices(HOME) is None
