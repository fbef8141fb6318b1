//! SQLite file that keeps servers and interfaces across a restart of the directory.

use std::path::Path;
use std::time::Duration;

use gridrpc_server::directory::Announcement;
use rusqlite::{Connection, params};

use crate::registry::{Entry, Registry};

/// Servers and interfaces on disk.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
}

impl Store {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// When it is no database, or cannot be read and written.
    pub fn open(file: &Path) -> rusqlite::Result<Store> {
        let connection = Connection::open(file)?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = NORMAL;
             CREATE TABLE IF NOT EXISTS servers (
                 address TEXT PRIMARY KEY, owner TEXT NOT NULL, announcement TEXT NOT NULL
             );
             CREATE TABLE IF NOT EXISTS interfaces (hash TEXT PRIMARY KEY, text TEXT NOT NULL);",
        )?;
        Ok(Store { connection })
    }

    /// Reads all servers and interfaces. Servers have one lifetime to announce themselves again. Rows that another
    /// version has written and this one cannot read are skipped: their servers announce themselves.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn load(&self, now: Duration) -> rusqlite::Result<Registry> {
        let mut registry = Registry::default();
        let mut interfaces = self.connection.prepare("SELECT hash, text FROM interfaces")?;
        let rows = interfaces
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        for row in rows {
            let (hash, text) = row?;
            let _ = registry.add_interface(&hash, &text);
        }
        let mut servers = self.connection.prepare("SELECT owner, announcement FROM servers")?;
        let rows = servers
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
        for row in rows {
            let (owner, text) = row?;
            if let Ok(announcement) = serde_json::from_str::<Announcement>(&text) {
                let _ = registry.announce(announcement, &owner, now);
            }
        }
        Ok(registry)
    }

    /// Keeps a server and its interfaces.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep(&mut self, entry: &Entry, registry: &Registry) -> rusqlite::Result<()> {
        let Entry { announcement, owner, .. } = entry;
        // An announcement consists of texts and numbers.
        let text = serde_json::to_string(announcement).unwrap_or_default();
        let transaction = self.connection.transaction()?;
        transaction.execute(
            "INSERT OR REPLACE INTO servers VALUES (?1, ?2, ?3)",
            params![announcement.address, owner, text],
        )?;
        for hash in announcement.modules.iter().filter_map(|module| module.hash.as_ref()) {
            if let Some(interface) = registry.interface(hash) {
                transaction.execute(
                    "INSERT OR IGNORE INTO interfaces VALUES (?1, ?2)",
                    params![hash, interface.text],
                )?;
            }
        }
        transaction.commit()
    }

    /// Forgets servers and interfaces.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn forget(&mut self, addresses: &[String], hashes: &[String]) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        for address in addresses {
            transaction.execute("DELETE FROM servers WHERE address = ?1", [address])?;
        }
        for hash in hashes {
            transaction.execute("DELETE FROM interfaces WHERE hash = ?1", [hash])?;
        }
        transaction.commit()
    }
}
