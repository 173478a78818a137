package state

import "io/fs"

const noFollow = 0

func isSuperuser() bool { return false }

func ownerIsForeign(fs.FileInfo) bool { return false }

func othersCanWrite(fs.FileInfo) bool { return false }

// Owner returns true, because Windows has no file modes.
func Owner(fs.FileInfo) (user uint32, ours bool) { return 0, true }

// CopyOwner does nothing, because a file inherits the rights of its folder.
func CopyOwner(string, fs.FileInfo, bool) error { return nil }

func sameGroup(a, b fs.FileInfo) bool { return true }

// Group returns "", because files have no group.
func Group(string) string { return "" }
