package state

// Pushes returns what WritePushes wrote; nil for nothing.
func (f Folder) Pushes() ([]byte, error) { return f.Read(PushFile) }

// WritePushes replaces the push notification configurations, durably.
func (f Folder) WritePushes(text []byte) error { return WriteAtomic(f.Path(PushFile), text, 0o600) }
