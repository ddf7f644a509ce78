package main

import (
	"pinwheel/comm/peer"
	"pinwheel/internal/tools/command"
)

// identityFlags say what proves to others who this one is.
type identityFlags struct {
	TokenFile   string `placeholder:"FILE" help:"Secret that ${all} know, of 32 characters or more, in a file that only you can read."`
	Certificate string `placeholder:"FILE" help:"Certificate of this ${self}, in PEM."`
	Key         string `placeholder:"FILE" help:"Its key, in PEM."`
	Authorities string `placeholder:"FILE" help:"Certificates of those who issue the certificates of ${others}, in PEM."`
}

func (f *identityFlags) given() bool { return f.TokenFile+f.Certificate+f.Key+f.Authorities != "" }

func (f *identityFlags) check() error {
	e := f.end()
	return command.AsUsage(e.CheckIdentity())
}

// end returns an end that is this one.
func (f *identityFlags) end() peer.End {
	return peer.End{TokenFile: f.TokenFile, Certificate: f.Certificate, Key: f.Key, Authorities: f.Authorities}
}
