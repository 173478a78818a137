package main

import (
	"agentsite/cmd/internal/homeassistant"
	"agentsite/cmd/internal/site"
	"agentsite/node/config"
	"agentsite/node/state"

	"github.com/spf13/cobra"
)

// homeAssistantFlags are the flags of an app of Home Assistant. All but the first are for tests: the Supervisor has one
// address, and its folders are always the same.
type homeAssistantFlags struct {
	on bool
	homeassistant.Options
}

func (f *homeAssistantFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.on, "home-assistant", false,
		"run as an app (add-on) of Home Assistant, in the container of its Supervisor")
	cmd.Flags().StringVar(&f.Supervisor, "supervisor", "", "the URL of the Supervisor")
	cmd.Flags().StringVar(&f.Listen, "listen-ingress", "", "the address that Home Assistant calls")
	cmd.Flags().StringVar(&f.Settings, "app-options", "", "the file of the app's options")
	for _, name := range []string{"supervisor", "listen-ingress", "app-options"} {
		cmd.Flags().MarkHidden(name)
	}
}

// runApp runs a site as an app of Home Assistant.
func (a *app) runApp(cmd *cobra.Command, f homeAssistantFlags, file string, listen config.Listen) error {
	f.Data, f.Config = state.Folder(a.data), file
	app, err := homeassistant.Open(cmd.Context(), f.Options)
	if err != nil {
		return err
	}
	for _, step := range app.Did {
		a.note("%s", step)
	}
	if app.Doubt != nil { // what is configured works without what was not found
		a.remark("warning: " + app.Doubt.Error())
	}
	a.data = string(app.Folder)
	return a.runSite(cmd.Context(), site.Options{
		Config: app.Config, Folder: app.Folder, Listen: listen, HomeAssistant: app.Site,
	}, app.Level)
}
