// Package top shows the ranks of this node as a table: once, or on a terminal until the user has seen enough
// ("pinwheel top"). What it shows comes from package monitor.
//
// table.go decides which columns fit and what they say, and touches no terminal, so its output is tested against
// golden files. screen.go is the view on the terminal, with its keys, and plain.go what is printed without one.
package top
