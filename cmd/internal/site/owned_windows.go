package site

import "io/fs"

// owned leaves it to the system, which knows no file modes.
func owned(fs.FileInfo) (user uint32, ours bool) { return 0, true }

func giveTo(string, fs.FileInfo, bool) error { return nil }

func groupOf(string) string { return "" }
