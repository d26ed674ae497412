"""Who may see the site: logins, sessions, and what a request must bring."""
