// Package guard is the only way to move an output.
//
// Machine decides: a state machine over plain values, with no clock, no callback
// and no I/O of its own, so that it can be tested by models and can live behind a
// socket. Guard drives: it owns the actuators, asks the machine, writes to the
// hardware until the hardware agrees, reads it back from then on, and keeps the
// deadlines.
//
// The guard knows outputs and holders. It knows no people, no protocols and no
// disk, but for the one file whose absence means "stopped" (Latch).
package guard
