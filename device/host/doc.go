// Package host is the computer itself as a device: how warm, busy and full it is,
// and whether its power supply holds.
//
// It reads Linux's /proc and /sys and never writes. What a machine lacks it does
// not describe; elsewhere than on Linux that is nearly everything.
package host
