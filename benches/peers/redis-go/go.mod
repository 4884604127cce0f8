module peers

go 1.25.0

require (
	github.com/cybergarage/go-redis v1.5.6
	github.com/tidwall/redcon v1.6.2
)

require (
	github.com/cybergarage/go-authenticator v1.0.4 // indirect
	github.com/cybergarage/go-logger v1.3.10 // indirect
	github.com/cybergarage/go-safecast v1.2.5 // indirect
	github.com/cybergarage/go-sasl v1.2.5 // indirect
	github.com/cybergarage/go-tracing v1.1.5 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/tidwall/btree v1.1.0 // indirect
	github.com/tidwall/match v1.1.1 // indirect
)
