// Package host is the driver of the computer itself: its temperature, load, memory, disk,
// network and power supply.
//
// It reads Linux's /proc and /sys and never writes. It describes no points that a machine lacks; on
// other systems than Linux that is nearly everything.
package host
