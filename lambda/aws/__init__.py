"""Every AWS call of the functions, one file a service; handlers wire them, policies never see them."""
