// Package guard is the only way to move an output.
//
// Machine decides: it is a state machine over plain values without a clock, callbacks or
// I/O, so that models can test it. Guard executes: it owns the actuators, asks the machine,
// writes to the hardware until the read-back agrees, keeps reading back, and keeps the
// deadlines.
//
// The guard knows outputs and holders. It does not depend on users, protocols or the disk,
// except for the one file whose absence means "stopped" (Latch).
package guard
