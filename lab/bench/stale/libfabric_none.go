//go:build !fabric

package main

import "errors"

var errLibfabric = errors.New("built without libfabric (install libfabric-dev and build with -tags fabric)")

func openLibfabric(string) (cache, link, func(), error) { return nil, nil, nil, errLibfabric }

func measureLibfabric(string) ([]sample, error) { return nil, errLibfabric }
