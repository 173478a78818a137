package protocols

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"

	"agentsite/cmd/internal/internet"
	"agentsite/device"
	"agentsite/node/config"
	"agentsite/node/state"
	"agentsite/node/things"
	"agentsite/transport/adapter"
	"agentsite/transport/web"
	"agentsite/transport/wot"
	"agentsite/transport/wot/register"
)

// Options are the parameters of adapters beside the site itself.
type Options struct {
	Config  *config.Site
	Folder  state.Folder
	File    string            // the configuration
	URL     string            // of the site for other machines; HTTP where they do not reach it
	Network *internet.Network // nil for none
}

// Open returns the routes of a configuration's adapters, after opening their stores.
func Open(o Options, s *adapter.Site) ([]web.Route, error) {
	if o.Config.WoT.Directory {
		file, err := o.Folder.ReadAtMost(state.ThingsFile, things.MaxFile)
		if err != nil {
			return nil, o.Folder.Unusable(err)
		}
		s.Things = things.Open(things.Options{
			File: file, Now: s.Now, Own: s.Key.ID().String() + "/things/",
			Write: func(b []byte) error { return state.WriteAtomic(o.Folder.Path(state.ThingsFile), b, 0o600) },
		})
		s.Go(func() { <-s.Ending.Done(); s.Things.Close() }) // before the folder is another's
		if o.Network != nil && o.Network.Realm().Exists() {
			s.Sites = func() []adapter.OtherSite { return sitesOf(o.Network) }
		}
	}
	if o.Config.WoT.Register != "" {
		s.Go(func() { o.register(s) })
	}
	s.Protocols = o.Config.Protocols
	return Routes(o.Config.Protocols, s), nil
}

// sitesOf returns the known sites of the realm that have a URL. It asks nobody.
func sitesOf(n *internet.Network) (all []adapter.OtherSite) {
	records, _ := n.Search(context.Background(), "") // of those that are known
	for _, r := range records {
		for _, at := range r.Addresses {
			if strings.HasPrefix(at, "http") && device.CheckName(r.Name) == nil {
				all = append(all, adapter.OtherSite{ID: r.Site.String(), Name: r.Name, URL: strings.TrimSuffix(at, "/mcp")})
				break
			}
		}
	}
	return all
}

// register keeps the site registered with the directory that its owner named, until the site
// begins to end.
func (o Options) register(s *adapter.Site) {
	url := strings.TrimSuffix(o.URL, "/mcp")
	if s.Domain != "" {
		url = "https://" + s.Domain
	}
	if !strings.HasPrefix(url, "https:") {
		slog.Warn("not registered with the directory, because other machines do not reach this site: HTTPS does not listen")
		return
	}
	id, td, err := wot.Registration(s.Key.ID(), s.Name, url)
	if err != nil {
		slog.Error("not registered with the directory", "err", err)
		return
	}
	r := register.Options{URL: o.Config.WoT.Register, ID: id, TD: td}
	if name := o.Config.WoT.KeyFile; name != "" {
		r.Token = func() (string, error) { return state.Secret(filepath.Dir(o.File), name) }
	}
	register.Run(s.Ending, r)
}
