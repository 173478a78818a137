package state

// Hooks returns the data of the last WriteHooks; nil for none.
func (f Folder) Hooks() ([]byte, error) { return f.Read(HooksFile) }

// WriteHooks replaces the webhooks of events, durably.
func (f Folder) WriteHooks(text []byte) error { return WriteAtomic(f.Path(HooksFile), text, 0o600) }

// Pushes returns the data of the last WritePushes; nil for none.
func (f Folder) Pushes() ([]byte, error) { return f.Read(PushFile) }

// WritePushes replaces the push notification configurations, durably.
func (f Folder) WritePushes(text []byte) error { return WriteAtomic(f.Path(PushFile), text, 0o600) }
