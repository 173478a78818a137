package hosting

import (
	"errors"
	"io/fs"
	"os"

	"agentsite/node/state"
	"agentsite/transport/export"
)

// openExport returns the World of the export of the history.
func openExport(o Options) export.World {
	path := o.Folder.Path(state.ExportFile)
	return export.World{
		Version: o.Version, Claimed: o.Access.Claimed, Now: o.Access.Now, Secret: secrets(o.File), File: besides(o.File),
		Load: func() ([]byte, error) {
			text, err := o.Folder.ReadAtMost(state.ExportFile, export.MaxFile)
			if err != nil {
				err = o.Folder.Unusable(err)
			}
			return text, err
		},
		Store: func(text []byte) error {
			if text != nil {
				return state.WriteAtomic(path, text, 0o600)
			}
			if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		},
	}
}
