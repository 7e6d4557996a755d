"""An S3 that holds its bytes in memory and answers over TLS, with the checksums that clients send: for the speed of clients, and for
what they make of cut connections and wrong bytes."""
