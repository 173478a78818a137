package state

// Pushes returns the data of the last WritePushes; nil for none.
func (f Folder) Pushes() ([]byte, error) { return f.Read(PushFile) }

// WritePushes replaces the push notification configurations, durably.
func (f Folder) WritePushes(text []byte) error { return WriteAtomic(f.Path(PushFile), text, 0o600) }
