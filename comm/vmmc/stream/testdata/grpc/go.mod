module pinwheel/comm/vmmc/stream/testdata/grpc

go 1.26.0

require (
	google.golang.org/grpc v1.76.0
	pinwheel v0.0.0
)

require (
	github.com/cilium/ebpf v0.22.0 // indirect
	github.com/google/btree v1.1.3 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/net v0.59.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250804133106-a7a43d27e69b // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace pinwheel => ../../../../..
