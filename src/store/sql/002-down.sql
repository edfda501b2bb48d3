-- 002-down.sql -- locks, waiters, shares and their clients go, and with them all that was held.
DROP TABLE tracked;
DROP TABLE shares;
DROP TABLE waiters;
DROP TABLE locks;
DROP TABLE clients;
