// Package imports has the agents that came to a site as bundles: drafts, which are inert and have
// no permission, and those that an owner accepted, which node/hosted runs beside the agents of
// the configuration.
package imports
