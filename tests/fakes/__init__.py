"""A fake of AWS behind real boto3 clients: no network, one virtual clock, and each fact about AWS written down once."""
