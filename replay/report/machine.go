package report

import (
	"runtime"

	"pinwheel/internal/machine"
)

// Machine says where and with what a report was made.
type Machine struct {
	CPU    string
	Cores  int
	Kernel string
	Go     string
}

// ThisMachine describes this machine.
func ThisMachine() Machine {
	this := machine.This()
	return Machine{CPU: this.Processor, Cores: this.Processors, Kernel: "Linux " + this.Kernel, Go: runtime.Version()}
}
