PRAGMA application_id = 1819175794;
PRAGMA user_version = 1;
CREATE TABLE entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    undoes INTEGER UNIQUE REFERENCES entries (number),
    seed TEXT NOT NULL, id TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('relevant', 'not', 'maybe', 'skip')),
    reviewer TEXT NOT NULL, note TEXT NOT NULL, tags TEXT NOT NULL,
    score REAL, probability REAL, model TEXT NOT NULL, phase TEXT NOT NULL, time TEXT NOT NULL
);
CREATE INDEX entries_of_reviewer ON entries (reviewer, number);
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END;
CREATE TABLE seeds (
    position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL, title TEXT NOT NULL,
    metadata TEXT NOT NULL, document TEXT NOT NULL
);
CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO entries VALUES
    (1, NULL, 's', 'a', 'relevant', 'ana', 'a note', '["t"]', -0.25, 0.5, 'abc', 'audit', '2026-01-02T03:04:05.000+00:00'),
    (2, NULL, 's', 'b', 'not', 'ben', '', '[]', NULL, NULL, '', 'queue', '2026-01-02T03:04:06.000+00:00'),
    (3, 2, 's', 'b', 'not', 'ben', '', '[]', NULL, NULL, '', 'queue', '2026-01-02T03:04:07.000+00:00');
INSERT INTO seeds VALUES (1, 's', 'a text', 'a title', '{"n":[1]}', 'd7');
INSERT INTO settings VALUES ('unit', '"pairs"'), ('target', '0.8');
