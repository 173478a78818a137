// Package journal records calls and their outcomes in an append-only file in segments. Each entry
// is chained to the one before by a hash. The journal also deduplicates retried calls.
//
// An intent is on the disk before its call acts; a result follows without a sync. So after a crash
// a call is known to have been done, known not to have begun, or has an unknown outcome. It is
// never done a second time.
//
// Tools, devices and people are only names here. The package imports node for the interface
// that Recorder implements, device for faults and node/identity for the codec.
package journal
