insert into trainyard.campaigns (name, instance_types, note)
values ('digits', '{g5.xlarge,ml.g5.xlarge}', 'Handwritten digits, a copy in each of four regions')

insert into trainyard.data_sets (campaign, name, region, address, bytes)
values
    ('digits', 'digits', 'eu-central-1', 's3://trainyard-bytes-REPLACE-WITH-ACCOUNT-eu-central-1/uploads/digits/', 60000),
    ('digits', 'digits', 'us-east-1', 's3://trainyard-bytes-REPLACE-WITH-ACCOUNT-us-east-1/uploads/digits/', 60000),
    ('digits', 'digits', 'us-west-2', 's3://trainyard-bytes-REPLACE-WITH-ACCOUNT-us-west-2/uploads/digits/', 60000),
    ('digits', 'digits', 'ap-northeast-1', 's3://trainyard-bytes-REPLACE-WITH-ACCOUNT-ap-northeast-1/uploads/digits/', 60000)
