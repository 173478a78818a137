// Package journal keeps what was asked and done: an append-only file in segments,
// each entry chained to the one before by a hash, and from it the memory that lets
// a retried call act once.
//
// An intent is on the disk before its call acts; a result follows without a sync of
// its own. So after a crash a call is known to have been done, known not to have
// been begun, or its outcome is unknown, and it is never done a second time.
//
// What a call means may not enter: tools, devices and people are names here. It imports node,
// for the interface that Recorder implements, and device for faults.
package journal
