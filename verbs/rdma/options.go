package rdma

// Options of Open. The zero value takes the first device with an active port.
type Options struct {
	// Device is "name" or "name:port".
	Device string
}

// DeviceInfo describes a port of a device of this machine.
type DeviceInfo struct {
	Name   string // "mlx5_0"
	Port   uint8  // from 1
	Active bool
	Link   string // "RoCE" or "InfiniBand"
	MTU    int    // bytes; 0 if the port is down
}
