module peers

go 1.26.0

require github.com/quic-go/quic-go v0.64.1
