//go:build !linux

package board

var failures []failure // there are no buses
