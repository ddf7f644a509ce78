//go:build race

package testwait

const underRace = true
