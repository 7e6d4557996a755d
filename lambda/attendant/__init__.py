"""The attendant: judges running attempts by their nodes' reports and instances, once a minute and whenever one may have changed."""
