module redis-glide-suite

go 1.22

require github.com/valkey-io/valkey-glide/go/v2 v2.5.3
