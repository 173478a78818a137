package site

import (
	"path/filepath"

	"agentsite/device/driver"
	"agentsite/node/config"
	"agentsite/node/state"
)

// settings are the configuration with the command line's options applied.
type settings struct {
	config   *config.Site
	file     string // "" for the demonstration
	absFile  string // its absolute path
	listen   config.HTTP
	internet *config.Internet // nil for a site that is not in the global network
}

// readSettings reads and checks the configuration and the options. It touches no hardware.
func readSettings(o Options, drivers []driver.Driver) (s settings, err error) {
	if s.config, s.file, err = o.read(drivers); err != nil {
		return s, err
	}
	if s.file != "" {
		if s.absFile, err = filepath.Abs(s.file); err != nil {
			return s, err
		}
	}
	if s.listen, s.internet, err = s.config.Listening(o.Listen); err != nil {
		err = state.Mistake{Err: err}
	}
	return s, err
}
