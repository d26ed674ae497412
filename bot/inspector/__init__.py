"""The site: chat in the browser, and the inspector of what the bot remembers and why."""
