"""Who may do what: recorded calls, put to a simulator of IAM."""
