// Package journal records calls and their outcomes: an append-only file in segments, each
// entry chained to the one before by a hash, and from it the memory by which a retried call
// acts once.
//
// An intent is on the disk before its call acts; a result follows without a sync. So after a
// crash a call is known to have been done, known not to have begun, or its outcome is unknown,
// and it is never done a second time.
//
// Tools, devices and people are only names here. The package imports node for the interface
// that Recorder implements, device for faults and node/identity for the codec.
package journal
