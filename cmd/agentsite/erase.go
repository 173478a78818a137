package main

import (
	"context"
	"errors"
	"strings"

	"agentsite/node/state"
	"agentsite/node/state/backup"
)

// erasing are the flags of reset --erase.
type erasing struct{ erase, key, yes bool }

type erasedResult struct {
	Erased []string `json:"erased"`
	Key    bool     `json:"key_kept"`
}

func (a *app) erase(ctx context.Context, e erasing) error {
	if err := a.requireLocal("reset --erase"); err != nil {
		return err
	}
	folder, err := a.folder()
	if err != nil {
		return err
	}
	erased, err := backup.Erase(folder, e.key, func() error {
		if e.yes {
			return nil
		}
		return a.confirmErase(ctx, folder, e.key)
	})
	if a.json && err == nil {
		return a.printJSON(erasedResult{erased, !e.key})
	}
	if len(erased) > 0 {
		err = errors.Join(err, a.say("erased from %s: %s", folder, strings.Join(erased, ", ")))
	}
	switch {
	case err != nil:
		return err
	case len(erased) == 0:
		return a.say("nothing to erase in %s", folder)
	}
	return a.say("The site has no owner now, until a claim or owner: in its configuration. An emergency stop stays in force.")
}

// confirmErase asks the person at the terminal to type a word.
func (a *app) confirmErase(ctx context.Context, folder state.Folder, key bool) error {
	if _, ok := a.terminal(); !ok {
		return usagef("there is no terminal to confirm this on: use --yes")
	}
	what := ""
	if key {
		what = " and the key, by which others know the site,"
	}
	const word = "erase"
	said, err := a.prompt(ctx, "This removes the owners, permissions, tokens, journal and history"+what+" of the site in "+clean(string(folder))+". Only a backup restores them.\nType "+word+" to continue: ", false)
	if err == nil && said != word {
		return usagef("you did not type %s: nothing is erased", word)
	}
	return err
}
