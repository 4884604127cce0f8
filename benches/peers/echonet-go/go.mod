module peers

go 1.25.0

require github.com/cybergarage/uecho-go v1.3.0

require github.com/cybergarage/go-logger v1.3.11 // indirect
