"""The keeper's two ways to work: after an end, and every hour."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from aws import executions
from aws.data_api import DataApi
from aws.s3 import Bucket
from contract.catalogue_environments import KeeperEnvironment
from keeper.ends import Ends, NotReported
from keeper.market import (
    LOOKS_BACK_S,
    KeptTables,
    MarketFacts,
    differs,
    merge_capacity,
    merge_prices,
    remember_ends,
    remember_market,
)
from keeper.memory import recall, remember
from keeper.rows import RunRow, find_grid
from keeper.tables import (
    begin_market,
    name_campaigns,
    read_market,
    read_types,
    write_capacity,
    write_prices,
    write_runs,
)

logger = Logger(service="keeper")


class Keeper:
    """Wakes the database only where something has to be written."""

    def __init__(
        self,
        env: KeeperEnvironment,
        database: DataApi,
        ask: Callable[[Sequence[str]], MarketFacts],
        clock: Callable[[], float],
    ) -> None:
        """`ask` says what AWS says of prices of these types, and of capacity."""
        self._env, self._database, self._ask, self._clock = env, database, ask, clock
        self._bucket, self._ends = Bucket(env.bucket), Ends(env, clock)

    def write_end(self, arn: str) -> int:
        """Writes what the execution left, and returns how many rows. Raises NotReported, DatabaseAway and AWS's errors."""
        rows = list(self._ends.read(arn))
        if rows:
            self._write(rows, {arn: self._clock()})
        return len(rows)

    def read_now(self) -> None:
        """Reads the types that the tables name, which wakes the database, finds runs of campaigns that are new, and then works as every
        hour."""
        with self._database.transaction() as transaction:
            name_campaigns(transaction)
        self._read_types()
        self.work()

    def work(self) -> None:
        """Writes ends of which no event told, and prices and capacity where they differ from what was written. Raises what the database
        answers."""
        before = self._recall()
        if not before.cluster:  # of a new or a restored database nothing is known, and it is asked once
            self._read_types()
        self._catch_up(before)
        before = self._recall()
        market = self._ask(before.types)
        prices = merge_prices(before, market, self._env.regions)
        capacity = merge_capacity(before, market, self._env.training)
        if not differs(before, prices, capacity):
            logger.info("nothing changed: the database may sleep", types=len(before.types), prices=len(prices))
            return
        self._write_market(market)

    def _write_market(self, market: MarketFacts) -> None:
        """Writes what differs from the tables, as they are once no other pass writes them: it may have asked later, and of more types. What
        was written is remembered where no pass has begun since."""
        with self._database.transaction() as transaction:
            this = begin_market(transaction)
            self._change(lambda one: replace(one, writing=this))
            types = read_types(transaction, now=self._clock())
            before = read_market(transaction, types)
            prices = merge_prices(before, market, self._env.regions)
            capacity = merge_capacity(before, market, self._env.training)
            write_prices(transaction, prices, now=self._clock())
            write_capacity(transaction, capacity)
        written = replace(before, prices=prices, capacity=capacity)
        self._change(lambda one: remember_market(one, written, this))
        logger.info("wrote prices and capacity", prices=len(prices), reservations=len(capacity), types=len(types))

    def _read_types(self) -> None:
        with self._database.transaction() as transaction:
            types = read_types(transaction, now=self._clock())
        self._remember({}, types)

    def _catch_up(self, before: KeptTables) -> None:
        """One whose report is not written yet is the next hour's; so is all of a machine that does not answer."""
        now = self._clock()
        for machine in (self._env.machine, self._env.grid_machine):
            try:
                ends = executions.ended_since(machine, now - LOOKS_BACK_S)
            except (ClientError, BotoCoreError) as problem:
                logger.warning("the executions could not be listed", machine=machine, problem=str(problem))
                continue
            grids = set[str]()
            for arn, ended_at in ends.items():
                if arn not in before.ends and not self._is_line(arn, grids):
                    self._write_missed(arn, ended_at)

    def _is_line(self, arn: str, grids: set[str]) -> bool:
        """Whether the execution is a line, of which the grid's records tell.

        One line of a grid is asked for, because it may have 10,000, and `grids` gets the beginning of the names of all of them. One that
        cannot be asked for is left to the next hour."""
        grid = find_grid(arn.rpartition(":")[2], self._env.deployment)
        if not grid or grid in grids:
            return bool(grid)
        try:
            is_one = self._ends.is_line(arn)
        except (ClientError, BotoCoreError) as problem:
            logger.warning("an end could not be read", execution=arn, problem=str(problem))
            return True
        if is_one:
            grids.add(grid)
        return is_one

    def _write_missed(self, arn: str, ended_at: float) -> None:
        try:
            rows = list(self._ends.read(arn))
        except NotReported:
            return
        except (ClientError, BotoCoreError, ValueError) as problem:
            logger.warning("an end could not be read", execution=arn, problem=str(problem))
            return
        if rows:
            logger.warning("no event told of an end", execution=arn)
            self._write(rows, {arn: ended_at})
        else:
            self._change(lambda one: remember_ends(one, {arn: ended_at}, now=self._clock()))

    def _write(self, rows: Sequence[RunRow], ends: dict[str, float]) -> None:
        with self._database.transaction() as transaction:
            write_runs(transaction, rows)
            types = read_types(transaction, now=self._clock())
        self._remember(ends, types)

    def _remember(self, ends: dict[str, float], types: tuple[str, ...]) -> None:
        now = self._clock()
        self._change(lambda one: replace(remember_ends(one, ends, now=now), types=types))

    def _recall(self) -> KeptTables:
        return recall(self._bucket, self._env.cluster_id)

    def _change(self, change: Callable[[KeptTables], KeptTables]) -> None:
        remember(self._bucket, self._env.cluster_id, change)
