package main

import (
	"testing"

	"pinwheel/internal/command/argstest"
)

func TestArgumentsKeepTheirBytes(t *testing.T) { argstest.KeepBytes(t, spec()) }
