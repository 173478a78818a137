package site

import (
	"path/filepath"

	"agentsite/device/driver"
	"agentsite/node/config"
	"agentsite/node/devices"
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
	s.config, s.file, err = devices.Check(o.Config, drivers, CheckAgents)
	if err != nil {
		return s, err
	}
	s.listen, s.internet = s.config.HTTP, s.config.Internet
	if o.Listen != "" {
		if err := config.CheckListen(o.Listen); err != nil {
			return s, state.Mistakef("--listen %w", err)
		}
		s.listen.Listen, s.listen.HTTPS = o.Listen, config.ListenNone // a second site, or a trial
		if o.ListenPeers == "" {
			s.internet = nil
		}
	}
	if s.file == "" {
		s.listen.HTTPS = config.ListenNone // nobody else needs a simulation
	} else if s.absFile, err = filepath.Abs(s.file); err != nil {
		return s, err
	}
	if o.ListenHTTPS != "" {
		if err := config.CheckHTTPS(o.ListenHTTPS); err != nil {
			return s, state.Mistakef("--listen-https %w", err)
		}
		s.listen.HTTPS = o.ListenHTTPS
	}
	if o.ListenPeers != "" {
		if err := config.CheckInternet(o.ListenPeers); err != nil {
			return s, state.Mistakef("--listen-peers %w", err)
		}
		if s.internet == nil {
			return s, state.Mistakef("--listen-peers is for a site whose configuration has the section internet")
		}
		internet := *s.internet
		internet.Listen, s.internet = o.ListenPeers, &internet
	}
	return s, nil
}
