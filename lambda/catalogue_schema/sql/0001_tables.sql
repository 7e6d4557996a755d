create table trainyard.campaigns (
    name text primary key check (length(name) between 1 and 80),
    instance_types text[] not null default '{}',
    note text not null default ''
)
--;
comment on table trainyard.campaigns is 'Campaigns, which people write: what is trained, again and again, as data comes'
--;
comment on column trainyard.campaigns.instance_types is 'Types of which the keeper writes prices and capacity, in every region'
--;
create table trainyard.data_sets (
    campaign text not null references trainyard.campaigns (name) on update cascade on delete cascade,
    name text not null check (name <> ''),
    region text not null check (region <> ''),
    address text not null check (address like 's3://_%'),
    bytes bigint check (bytes >= 0),
    primary key (campaign, name, region)
)
--;
comment on table trainyard.data_sets is 'Data of campaigns, one row a copy, which people write'
--;
comment on column trainyard.data_sets.region is 'Where this copy lies'
--;
comment on column trainyard.data_sets.bytes is 'Size of the copy; null where nobody counted'
--;
create table trainyard.runs (
    name text primary key,
    kind text not null check (kind in ('job', 'line', 'trial')),
    campaign text not null default '',
    region text not null default '',
    type text not null default '',
    image text not null default '',
    outcome text not null check (outcome in ('Completed', 'Failed', 'Stopped', 'Refused')),
    metrics jsonb not null default '{}' check (jsonb_typeof(metrics) = 'object'),
    seconds double precision check (seconds >= 0),
    cost_usd double precision check (cost_usd >= 0),
    ended_at timestamptz not null
)
--;
create index runs_of_campaign on trainyard.runs (campaign, ended_at)
--;
comment on table trainyard.runs is 'What has ended, one row a job, a line of a grid or a trial of a search, which the keeper writes'
--;
comment on column trainyard.runs.name is 'The name of the job, or <grid>/<index> of the line'
--;
comment on column trainyard.runs.campaign is 'The campaign that started it, by its name; empty for none'
--;
comment on column trainyard.runs.image is 'The image in which it trained; empty for the image of the machine'
--;
comment on column trainyard.runs.metrics is 'Last values by name'
--;
comment on column trainyard.runs.seconds is 'From its start to its end; null where that is not known'
--;
comment on column trainyard.runs.cost_usd is 'What it cost at most; null where that is not known'
--;
create table trainyard.prices (
    region text not null,
    type text not null,
    market text not null check (market in ('on-demand', 'spot')),
    usd double precision not null check (usd > 0),
    at timestamptz not null,
    primary key (region, type, market)
)
--;
comment on table trainyard.prices is 'An hour of one instance, US dollars, which the keeper writes'
--;
comment on column trainyard.prices.usd is 'Of spot: in the cheapest zone of the region'
--;
comment on column trainyard.prices.at is 'When it was the price. A later price that differs by less than 2 % is not written'
--;
create table trainyard.capacity (
    reservation text primary key,
    region text not null,
    type text not null,
    kind text not null check (kind in ('reservation', 'block')),
    free integer not null check (free >= 0),
    begins timestamptz,
    ends timestamptz
)
--;
create index capacity_of_type on trainyard.capacity (region, type)
--;
comment on table trainyard.capacity is 'On-Demand Capacity Reservations and Capacity Blocks with the tag of the deployment, which the keeper writes'
--;
comment on column trainyard.capacity.free is 'Instances that could start in it when the keeper last asked'
--;
comment on column trainyard.capacity.ends is 'When AWS begins to end what runs in it; null for never'
