create schema team
--;
comment on schema team is 'Views and tables that people add for their queries'
--;
create role reader with login nosuperuser nocreatedb nocreaterole noinherit
--;
comment on role reader is 'Queries of grids: reads, and does nothing else'
--;
alter role reader set default_transaction_read_only = on
--;
alter role reader set statement_timeout = '30s'
--;
alter role reader set idle_in_transaction_session_timeout = '60s'
--;
alter role reader set search_path = trainyard, team
--;
revoke all on database trainyard from public
--;
grant connect on database trainyard to reader
--;
revoke all on schema public from public
--;
grant usage on schema trainyard, team to reader
--;
grant select on all tables in schema trainyard to reader
--;
revoke all on trainyard.applied from reader
--;
alter default privileges in schema trainyard grant select on tables to reader
--;
alter default privileges in schema team grant select on tables to reader
--;
alter default privileges revoke execute on functions from public
