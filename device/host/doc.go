// Package host is the driver of the computer itself: its temperature, load, memory, disk,
// network and power supply.
//
// It reads Linux's /proc and /sys and never writes. What a machine lacks it does
// not describe; elsewhere than on Linux that is nearly everything.
package host
